import Relay
import Support
import Synchronization

/// Buffers the beginnings of streams until their recorders take them. Any thread.
final class RecordingHeads: Sendable {
    /// By stream path.
    private let rows = Mutex<NameTable<RecordingHead>>([:])

    /// Buffers the stream's frames, unless they are already buffered.
    func add(_ stream: Relay.Stream, of registry: StreamRegistry, limitBytes: Int, ledger: MemoryLedger) {
        let isFirst = self.rows.withLock { $0[stream.path] == nil }
        guard isFirst else { return }
        let head = RecordingHead(of: stream, in: registry, limitBytes: limitBytes, ledger: ledger)
        let other = self.rows.withLock { rows -> RecordingHead? in
            // Another caller was faster.
            guard rows[stream.path] == nil else { return head }
            rows[stream.path] = head
            return nil
        }
        other?.drop()
    }

    /// Removes and returns the frames buffered for the stream's recorder.
    func remove(_ stream: Relay.Stream) -> RecordingHead? {
        guard let head = self.rows.withLock({ $0.removeValue(forKey: stream.path) }) else { return nil }
        if head.isOf(stream) { return head }
        head.drop()
        return nil
    }

    /// Drops buffers that no recorder has taken in time.
    func dropStale(nowMs: Int64) {
        let stale = self.rows.withLock { rows in
            let stale = rows.filter { $0.value.isStale(nowMs: nowMs) }
            for path in stale.keys { rows[path] = nil }
            return stale.values
        }
        for head in stale { head.drop() }
    }

    func dropAll() { for head in self.rows.exchange([:]).values { head.drop() } }
}
