"""Where in the text does that point?"""
