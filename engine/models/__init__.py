"""Asking a model that speaks the Messages API: requests, answers, costs and structured output."""
