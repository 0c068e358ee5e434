"""Knowledge in the forms that other programs have it in: a store out to them, and back.

A family: `base` is what every form is read into and written from, a module a form. One rule: what
is read comes from strangers, and nothing of it is believed before it was checked.
"""
