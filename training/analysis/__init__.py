"""What the papers plot: attention looked at closely, and scores and speed by length and beam size.

Nothing here asks which architecture a model is: attentions are known by the names that it gives them
(``path.layer.over``, see :meth:`models.protocol.Seq2SeqModel.attention`).
"""
