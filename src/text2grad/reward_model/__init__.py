"""How much is each token worth?"""
