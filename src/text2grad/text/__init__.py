"""Word lists, stems and two word splitters, shared by alignment and critics.

`words` reads English as the rule critics need it: numbers with their units, abbreviations, sentences, names.
`whitespace` cuts any completion, code included, at white space, so that every character but white space belongs to
exactly one word: the unit that the learned aligner labels. Both use the same word lists and the same stems, but they
are not interchangeable: the critics' scores depend on the first, the aligner's trained weights on the second.
"""
