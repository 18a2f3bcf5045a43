"""What a move tells, to whom, and what it is worth: implicit communication measured with exact beliefs.

One file a question. All quantities are in bits or in points a deal, over deals that the measured players played.
"""
