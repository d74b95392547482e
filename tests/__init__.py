"""Tests, as a package of their own: installed ones of that name must not hide them."""
