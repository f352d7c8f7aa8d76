"""Words and their opposites from thesauri."""
