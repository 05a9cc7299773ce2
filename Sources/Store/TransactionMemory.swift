package import Rooms

/// What a transaction has read or written, and nobody else can change until its end: so it need not ask again. At a far database each answer is a round
/// trip, and all nodes wait for the transaction's end. Used by the writer's thread.
package final class TransactionMemory {
    /// The number of the newest event. The row that counts them is locked from the first one on.
    package var lastEvent: Int64?
    /// The webhooks made by the API. Whoever changes them waits for this transaction's end.
    package var webhooks: [StoredWebhook]?

    /// Something was undone.
    package func forget() {
        self.lastEvent = nil
        self.webhooks = nil
    }
}
