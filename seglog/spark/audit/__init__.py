"""What ``seglog check`` finds, in splits on Spark: the same findings, of many stores in one job.

A check walks the log of one store in threads. An audit cuts the logs of all stores into splits, which tasks
walk wherever they run (:mod:`seglog.spark.audit.job`), with the walk of the check itself. What each split
saw travels as rows, one interval for each queue in it (:mod:`seglog.spark.audit.outcome_rows`), and the
driver concludes from them with the check's own code (:class:`seglog.doctor.check.check.StoreCheck`). So both
find the same; only the time differs.
"""
