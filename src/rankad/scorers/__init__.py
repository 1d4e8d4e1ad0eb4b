"""What scores rows: RankSVM's kernel, the far field, the near field, a mixture of Gaussians; their fusion."""
