"""What browser extensions send to such servers: Google's form (v2), DeepLX's, Immersive Translate's and KISS's."""
