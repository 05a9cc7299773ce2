/// Records the headers of a publisher's messages in a ring of packed records, for its connection. Loop-bound.
///
/// A bare pointer, since it is used for each message: one store, without reference counts and checks of exclusivity, which would be four fifths of
/// the instructions. It is valid as long as the ``SessionTrace`` that returned it, so its holder must keep that trace too.
///
///     | state | record | record | …   record: | timestamp 32 | length 24, flags 8 | arrival 20, type - 8 4, message stream id 8 |
///
/// The arrival is the low bits of its time in ms. Twelve bytes per record hold thirty seconds of an ordinary push in a publisher's share.
package struct HeaderRecorder {
    struct State {
        let capacity: UInt32
        /// Position of the next record.
        var next: UInt32 = 0
        /// Records written since the beginning, modulo 2^32.
        var total: UInt32 = 0
        var isFull = false
        /// Time of this read turn.
        var turnMs: Int64 = 0
    }

    struct Record {
        var words: (UInt32, UInt32, UInt32) = (0, 0, 0)
    }

    /// Bytes of one record.
    package static let recordBytes = 12
    private static let stateBytes = 32
    /// The message types that fit a record: audio, video, data and shared objects, commands, aggregates.
    fileprivate static let types: ClosedRange<UInt8> = 8...22
    /// Also represents any larger id: the server itself assigns small ones.
    private static let largestStreamID: UInt32 = 0xFF
    fileprivate static let arrivalMask: UInt32 = 0xF_FFFF
    /// If more time passes between two records than their arrivals can express, earlier records are dropped. They are then 17 minutes old.
    private static let longestGapMs = Int64(Self.arrivalMask)

    /// Whether a record can hold the whole header.
    static func holds(_ header: TracedHeader) -> Bool { self.types.contains(header.type) && header.streamID < self.largestStreamID }

    private let state: UnsafeMutablePointer<State>
    private let records: UnsafeMutablePointer<Record>

    init(capacity: Int) {
        let capacity = max(1, capacity)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Self.stateBytes + capacity * Self.recordBytes, alignment: 8)
        self.state = memory.initializeMemory(as: State.self, to: State(capacity: UInt32(truncatingIfNeeded: capacity)))
        self.records = (memory + Self.stateBytes).initializeMemory(as: Record.self, repeating: Record(), count: capacity)
    }

    /// Frees the memory. No copy of this value may be used afterwards.
    func free() { UnsafeMutableRawPointer(self.state).deallocate() }

    var total: UInt32 { self.state.pointee.total }

    /// Sets the time of the following headers, unless it lies before the former one. Once per read turn: reading the clock costs more than a record.
    package func begin(nowMs: Int64) {
        let passedMs = nowMs - self.state.pointee.turnMs
        guard passedMs > 0 else { return }
        if passedMs > Self.longestGapMs { (self.state.pointee.next, self.state.pointee.isFull) = (0, false) }
        self.state.pointee.turnMs = nowMs
    }

    /// Records a message of a supported type. `flags` are those of its media tag, as far as ``TracedHeader/Flags`` has them, or `unreadable`.
    package func add(type: UInt8, timestamp: UInt32, length: Int, streamID: UInt32, flags: TracedHeader.Flags) {
        let state = self.state
        let next = state.pointee.next
        let length = UInt32(truncatingIfNeeded: min(length, 0xFF_FFFF))
        let arrival = UInt32(truncatingIfNeeded: state.pointee.turnMs) << 12
        let kind = UInt32((type &- Self.types.lowerBound) & 0xF) << 8 | min(streamID, Self.largestStreamID)
        self.records[Int(next)].words = (timestamp, length << 8 | UInt32(flags.rawValue), arrival | kind)
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
        let records = (Array(older) + Array(0..<next)).map { self.records[$0] }
        return HeaderList(records: records, total: self.total, turnMs: self.state.pointee.turnMs)
    }
}

/// The headers of a publisher's newest messages, oldest first. A plain value.
struct HeaderList: Sendable {
    let records: [HeaderRecorder.Record]
    /// Records written up to the newest, modulo 2^32.
    let total: UInt32
    /// Time of the newest read turn.
    let turnMs: Int64

    /// Number of the oldest record, modulo 2^32, counted from 0.
    var first: UInt32 { self.total &- UInt32(truncatingIfNeeded: self.records.count) }

    /// All entries. The time of each is the latest one that is consistent with its bits and with the next entry.
    var entries: [TraceEntry] {
        var atMs = self.turnMs
        let reversed = self.records.reversed().map { record in
            atMs -= record.age(atMs)
            let header = record.header
            return TraceEntry(atMs: atMs, .received, .message, header.name, streamID: header.streamID, header: header)
        }
        return reversed.reversed()
    }
}

extension HeaderRecorder.Record: Sendable {
    /// Milliseconds from the record's arrival to `nowMs`, modulo 2^20.
    func age(_ nowMs: Int64) -> Int64 {
        Int64((UInt32(truncatingIfNeeded: nowMs) &- self.words.2 >> 12) & HeaderRecorder.arrivalMask)
    }

    var header: TracedHeader {
        TracedHeader(
            timestamp: self.words.0, type: UInt8(truncatingIfNeeded: self.words.2 >> 8 & 0xF) + HeaderRecorder.types.lowerBound,
            length: Int(self.words.1 >> 8), streamID: self.words.2 & 0xFF,
            flags: TracedHeader.Flags(rawValue: UInt8(truncatingIfNeeded: self.words.1)))
    }
}
