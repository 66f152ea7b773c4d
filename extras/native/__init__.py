"""Operators of our own for ONNX Runtime, in C++: attention over what a row sees, the end of a step, 8-bit rows.

``src`` holds them, :mod:`extras.native.building` compiles them where a compiler is, :mod:`extras.native.library` finds
what was compiled, and :mod:`extras.native.fusing` writes them into a graph as it is opened. Without them the same
graph runs as it is.
"""
