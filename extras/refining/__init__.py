"""Words that a source makes likely, while training and as a bundle's shortlist; and one bundle of several."""
