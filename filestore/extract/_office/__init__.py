"""Documents of Office 2007 and later: ZIP archives of XML parts. Loads nothing by itself.

One rule: no part is unpacked before the whole archive was checked, and no library sees more of a
file than the parts it needs.
"""
