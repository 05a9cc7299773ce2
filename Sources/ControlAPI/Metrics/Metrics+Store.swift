import HTTPAPI
import RoomRegistry
import Rooms
import Statistics
import Streaming
import Support
import Talkback

/// The store of rooms.
extension Metrics {
    mutating func addStore(_ store: StoreStatus) {
        let figures = self.services.figures.current
        self.page.gauge("earshot_store_failing", "1 while the store cannot be written.", store.isFailing ? 1 : 0)
        if let free = store.freeBytes { self.page.gauge("earshot_store_free_bytes", "Bytes free on the store's disk.", Double(free)) }
        self.page.gauge(
            "earshot_store_min_free_bytes", "Bytes that must stay free there, or nothing new begins: data.minFree.",
            Double(store.minFreeBytes))
        self.page.gauge("earshot_store_waiting_facts", "Facts that wait to be written to the store.", store.waitingFacts)
        self.page.gauge("earshot_store_waiting_bytes", "Approximate bytes of the waiting facts.", store.waitingBytes)
        self.page.counter(
            "earshot_store_dropped_facts_total", "Facts dropped because too many were waiting.", UInt64(clamping: store.droppedFacts))
        self.page.histogram("earshot_store_commit_seconds", "Time of the store's transactions.", figures.commits)
        self.page.counter("earshot_store_failures_total", "Transactions that failed.", figures.failedCommits)
    }

}
