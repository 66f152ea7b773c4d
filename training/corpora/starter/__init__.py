"""From two text files to split corpora and a recipe whose sizes follow from the text: `tandem new`."""
