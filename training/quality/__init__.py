"""How good text is that a model wrote: scores, their significance, robustness, confidence, and what the papers plot.

Nothing here asks which architecture a model is: attentions are known by the names that it gives them
(``path.layer.over``, see :meth:`models.architectures.protocol.Seq2SeqModel.attention`).
"""
