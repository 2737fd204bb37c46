"""Puts a critic through a catalogue of degenerate answers: would a policy that optimises its score learn them?"""
