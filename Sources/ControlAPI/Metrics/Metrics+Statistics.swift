import HTTPAPI
import Statistics

extension Metrics {
    mutating func addStatistics(_ statistics: Statistics) {
        self.page.gauge("earshot_stats_paused", "1 while the statistics cannot be written.", statistics.store.problem == nil ? 0 : 1)
        self.page.gauge("earshot_stats_waiting_rows", "Rows of statistics that wait to be written.", statistics.waiting)
        self.page.counter(
            "earshot_stats_lost_rows_total", "Rows of statistics lost because too many were waiting.", UInt64(clamping: statistics.lost))
        self.page.counter(
            "earshot_stats_surplus_rows_total", "Rows of statistics deleted before their time: there were more than stats.maxRows.",
            UInt64(clamping: statistics.store.surplusRows))
    }
}
