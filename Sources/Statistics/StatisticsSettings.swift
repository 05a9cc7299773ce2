/// How much is kept, and for how long. A value.
package struct StatisticsSettings: Sendable {
    /// Rows of minutes older than this become rows of ten minutes.
    package var minutesMs: Int64 = 86_400_000
    /// Everything older than this is deleted.
    package var keepMs: Int64 = 31 * 86_400_000
    /// Most rows of each of the four tables; beyond it, the oldest are deleted first.
    package var maxRows = 500_000
    /// Most rows of each kind that may wait to be written.
    package var mostPending = PendingRows.most
    /// Whether the disk has room for figures. Asked on the store's queue.
    package var hasSpace: @Sendable () -> Bool = { true }

    package init() {}
}
