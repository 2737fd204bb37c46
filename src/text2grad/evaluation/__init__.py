"""What came out?"""
