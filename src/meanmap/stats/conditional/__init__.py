"""Are two variables independent given a third?"""
