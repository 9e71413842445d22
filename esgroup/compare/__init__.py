"""Comparing methods on problems.

Evaluations are counted outside the methods. The modules, each importing only those before it:

    records     what is stored of a run, and the CSV file of runs
    trial       what a method is given: counted functions, a start and a budget
    methods     the methods that can be compared
    charts      coordinates of matrices, for methods that search vectors
    execution   one run
    presets     comparisons that have a name
    plan        the runs that a comparison consists of
    folder      the folder of a comparison
    workers     processes that do the runs
    report      table, figures and page
    command     `esgroup compare`
"""
