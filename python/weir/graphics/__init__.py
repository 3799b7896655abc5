"""The grammar of figures: a figure, its theme, its marks and channels."""
