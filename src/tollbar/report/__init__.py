"""Words of a judgement: the only place that makes names, rows, captions, sentences, notes and charts' data.

The report, the terminal and the JSON document take theirs from here and only lay them out. Sentences are made from
verdicts alone.
"""
