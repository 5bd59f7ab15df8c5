"""Build the book, ``python -m nads_book.site``, or set its address, ``python -m nads_book.site
address URL``.
"""

import sys

if sys.argv[1:2] == ["address"]:
    from nads_book.checkout import checkout_folder
    from nads_book.site.address import set_address

    if len(sys.argv) != 3:
        sys.exit("usage: python -m nads_book.site address https://github.com/OWNER/NAME")
    try:
        changed = set_address(sys.argv[2], checkout_folder("notebooks").parent)
    except ValueError as error:
        sys.exit(f"error: {error}")
    print(f"{len(changed)} files changed")
else:
    from nads_book.site.build import main

    sys.exit(main())
