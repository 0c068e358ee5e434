"""Questions into hits: retrieval, fusion, reranking, freshness, evaluation."""
