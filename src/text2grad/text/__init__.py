"""Words, lexicon, stems and sentence splitting shared by alignment and critics."""
