"""The foundation: conversion between users' data and arrays, randomness, reports, progress and errors."""

from meanmap.core.door import Door
from meanmap.core.errors import (
    ColumnError,
    EmptyError,
    ForkError,
    InputError,
    KindError,
    MissingPackageError,
    NonFiniteError,
    ParameterError,
    PrecisionError,
    ShapeError,
)
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.tables.schema import Schema
from meanmap.core.tables.table import Table

__all__ = [
    "ColumnError",
    "Door",
    "EmptyError",
    "ForkError",
    "InputError",
    "KindError",
    "MissingPackageError",
    "NonFiniteError",
    "ParameterError",
    "PrecisionError",
    "Report",
    "Rng",
    "Schema",
    "ShapeError",
    "Table",
]
