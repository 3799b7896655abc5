"""`fabric`: published numbers of data-centre fabrics next to ours."""
