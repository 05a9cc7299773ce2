/// Where a publisher's connection writes the headers of its messages: a ring of packed records. Loop-bound.
///
/// A bare pointer, since it is used for each message: one store, without reference counts and checks of exclusivity, which would be four
/// fifths of the instructions. It is valid as long as the ``SessionTrace`` that gave it out; who keeps it keeps that, too.
///
///     | state | record | record | …        record: | low 32 bits of the time in ms | the three words of ``TracedHeader`` |
package struct HeaderRecorder {
    struct State {
        let capacity: UInt32
        /// Position of the next record.
        var next: UInt32 = 0
        /// Records written since the beginning, modulo 2^32.
        var total: UInt32 = 0
        /// Low 32 bits of the time of this read turn, in ms.
        var turn: UInt32 = 0
        var isFull = false
    }

    struct Record {
        var time: UInt32 = 0
        var words: (UInt32, UInt32, UInt32) = (0, 0, 0)
    }

    /// Bytes of one record.
    package static let recordBytes = 16
    /// The state has the room of two records.
    private static let stateBytes = 32

    private let state: UnsafeMutablePointer<State>
    private let records: UnsafeMutablePointer<Record>

    init(capacity: Int) {
        let capacity = max(1, capacity)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Self.stateBytes + capacity * Self.recordBytes, alignment: 16)
        self.state = memory.initializeMemory(as: State.self, to: State(capacity: UInt32(truncatingIfNeeded: capacity)))
        self.records = (memory + Self.stateBytes).initializeMemory(as: Record.self, repeating: Record(), count: capacity)
    }

    /// Frees the memory. Nobody may use any copy of this value after it.
    func free() { UnsafeMutableRawPointer(self.state).deallocate() }

    var total: UInt32 { self.state.pointee.total }

    /// Sets the time that the next headers get. Once per read turn: reading the clock costs more than a record.
    package func begin(nowMs: Int64) { self.state.pointee.turn = UInt32(truncatingIfNeeded: nowMs) }

    /// Records a message. `flags` are those of its media tag, as far as ``TracedHeader/Flags`` has them, or `unreadable`.
    package func add(type: UInt8, timestamp: UInt32, length: Int, streamID: UInt32, flags: TracedHeader.Flags) {
        let state = self.state
        let next = state.pointee.next
        let record = self.records + Int(next)
        record.pointee.time = state.pointee.turn
        record.pointee.words = TracedHeader.pack(timestamp, type, length, streamID, flags)
        state.pointee.total &+= 1
        if next &+ 1 == state.pointee.capacity {
            state.pointee.next = 0
            state.pointee.isFull = true
        } else {
            state.pointee.next = next &+ 1
        }
    }

    /// The ring's entries, oldest first.
    var copy: HeaderList {
        let next = Int(self.state.pointee.next)
        let older = self.state.pointee.isFull ? next..<Int(self.state.pointee.capacity) : 0..<0
        return HeaderList(records: (Array(older) + Array(0..<next)).map { self.records[$0] }, total: self.total)
    }
}

/// The headers of a publisher's newest messages, oldest first. A plain value.
struct HeaderList: Sendable {
    let records: [HeaderRecorder.Record]
    /// Records written up to the newest, modulo 2^32.
    let total: UInt32

    /// Number of the oldest, modulo 2^32, counted from 0.
    var first: UInt32 { self.total &- UInt32(truncatingIfNeeded: self.records.count) }

    /// Its time is the newest one at or before `nowMs` that has the stored bits.
    func entry(_ position: Int, nowMs: Int64) -> TraceEntry {
        let record = self.records[position]
        let header = TracedHeader(packed: record.words)
        let age = UInt32(truncatingIfNeeded: nowMs) &- record.time
        return TraceEntry(atMs: nowMs - Int64(age), .received, .message, header.name, streamID: header.streamID, header: header)
    }
}

extension HeaderRecorder.Record: Sendable {}
