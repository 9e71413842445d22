"""The report of a comparison, made from its runs only: a table, figures and an HTML page.

    statistics  expected running times, ratios with intervals, quartiles of curves
    summary     rows of the table, from runs
    words       how numbers are written, and the answer in sentences
    table       the table in Markdown
    drawing     how figures look, and how they become files
    figures     convergence and runtime profiles
    page        the HTML page, from the template page.html.j2
    outputs     all the files of a comparison
"""
