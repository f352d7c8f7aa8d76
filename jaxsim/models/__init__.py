"""Model families: parameters and one pure ``encode(params, terms) -> Vectors`` each."""
