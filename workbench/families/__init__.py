"""Families of questions, one folder each: the models that answer them and the closed forms that
judge the answers.
"""
