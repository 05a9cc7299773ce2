/// The newest commands, control messages, requests and states of a session: a ring of packed records of varying length. A plain value.
///
/// ```
/// | time in ms 6 | headers before it 4 | direction 4 bits, kind 4 bits | name length 1 | text length 1 |
/// | commands: message stream id 4, transaction 4 | name | text |
/// ```
/// Integers are big-endian. A record that does not fit pushes out the oldest ones. A message's text is its header of 12 bytes.
package struct EventRing: Sendable {
    private var bytes: [UInt8]
    /// Index of the oldest record.
    private var start = 0
    private var used = 0
    package private(set) var count = 0

    private static let headBytes = 13
    private static let idBytes = 8
    /// Bytes. Longer texts are cut.
    package static let longestName = 40
    package static let longestText = 240
    /// Bytes that are enough for any single record.
    package static let leastCapacity = headBytes + idBytes + longestName + longestText
    /// Represents a missing transaction.
    private static let noTransaction = UInt32.max

    /// `capacity`: bytes, at least ``leastCapacity``.
    package init(capacity: Int) { self.bytes = Array(repeating: 0, count: max(Self.leastCapacity, capacity)) }

    package var capacity: Int { self.bytes.count }

    /// Whether the entry fits without pushing out another.
    func hasSpace(for entry: TraceEntry) -> Bool {
        self.used + Self.size(name: entry.name.utf8.count, text: entry.text.utf8.count, entry) <= self.capacity
    }

    private static func size(name: Int, text: Int, _ entry: TraceEntry) -> Int {
        let text = entry.kind == .message ? 12 : min(text, self.longestText)
        return self.headBytes + (entry.kind == .command ? self.idBytes : 0) + min(name, self.longestName) + text
    }

    /// `headersBefore`: the number of records in the session's ``HeaderRecorder`` at that time. It defines the order between the two rings.
    package mutating func append(_ entry: TraceEntry, headersBefore: UInt32 = 0) {
        let name = Self.cut(entry.name, to: Self.longestName)
        var text = Self.cut(entry.text, to: Self.longestText)
        if entry.kind == .message {
            let packed = entry.header?.packed ?? (0, 0, 0)
            text = [packed.0, packed.1, packed.2].flatMap(Self.bigEndian)
        }
        let size = Self.headBytes + (entry.kind == .command ? Self.idBytes : 0) + name.count + text.count
        while self.used + size > self.capacity { self.dropOldest() }
        let time = UInt64(bitPattern: entry.atMs)
        self.put(Self.bigEndian(UInt32(truncatingIfNeeded: time >> 16)))
        self.put([UInt8(truncatingIfNeeded: time >> 8), UInt8(truncatingIfNeeded: time)])
        self.put(Self.bigEndian(headersBefore))
        self.put([entry.direction.rawValue << 4 | entry.kind.rawValue, UInt8(name.count), UInt8(text.count)])
        if entry.kind == .command {
            self.put(Self.bigEndian(entry.streamID ?? 0))
            self.put(Self.bigEndian(entry.transaction ?? Self.noTransaction))
        }
        self.put(name)
        self.put(text)
        self.count += 1
    }

    /// Extends the memory; the records stay.
    mutating func grow(to capacity: Int) {
        guard capacity > self.capacity else { return }
        var grown: [UInt8] = []
        grown.reserveCapacity(capacity)
        for offset in 0..<self.used { grown.append(self.byte(offset)) }
        grown.append(contentsOf: repeatElement(0, count: capacity - self.used))
        self.bytes = grown
        self.start = 0
    }

    /// All records, oldest first, each with the number of headers before it (modulo 2^32).
    func all() -> [(entry: TraceEntry, headersBefore: UInt32)] {
        var offset = 0
        var all: [(entry: TraceEntry, headersBefore: UInt32)] = []
        all.reserveCapacity(self.count)
        while offset < self.used {
            let kind = TraceKind(rawValue: self.byte(offset + 10) & 15) ?? .state
            let direction = TraceDirection(rawValue: self.byte(offset + 10) >> 4) ?? .here
            let nameLength = Int(self.byte(offset + 11))
            let textLength = Int(self.byte(offset + 12))
            let time = UInt64(self.word(offset)) << 16 | UInt64(self.byte(offset + 4)) << 8 | UInt64(self.byte(offset + 5))
            var body = offset + Self.headBytes
            var entry = TraceEntry(atMs: Int64(time), direction, kind, "")
            if kind == .command {
                entry.streamID = self.word(body)
                let transaction = self.word(body + 4)
                entry.transaction = transaction == Self.noTransaction ? nil : transaction
                body += Self.idBytes
            }
            entry.name = self.text(body, nameLength)
            body += nameLength
            if kind == .message {
                let header = TracedHeader(packed: (self.word(body), self.word(body + 4), self.word(body + 8)))
                (entry.name, entry.streamID, entry.header) = (header.name, header.streamID, header)
            } else {
                entry.text = self.text(body, textLength)
            }
            all.append((entry, self.word(offset + 6)))
            offset = body + textLength
        }
        return all
    }

    private mutating func dropOldest() {
        let isCommand = self.byte(10) & 15 == TraceKind.command.rawValue
        let size = Self.headBytes + (isCommand ? Self.idBytes : 0) + Int(self.byte(11)) + Int(self.byte(12))
        self.start = (self.start + size) % self.capacity
        self.used -= size
        self.count -= 1
    }

    private mutating func put(_ new: some Collection<UInt8>) {
        var index = (self.start + self.used) % self.capacity
        for byte in new {
            self.bytes[index] = byte
            index = index + 1 == self.capacity ? 0 : index + 1
        }
        self.used += new.count
    }

    private func byte(_ offset: Int) -> UInt8 { self.bytes[(self.start + offset) % self.capacity] }

    private func word(_ offset: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 << 8 | UInt32(self.byte(offset + $1)) }
    }

    private func text(_ offset: Int, _ length: Int) -> String {
        String(decoding: (offset..<offset + length).map(self.byte), as: UTF8.self)
    }

    private static func bigEndian(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    /// Cuts between two characters of UTF-8.
    private static func cut(_ text: String, to limit: Int) -> [UInt8] {
        let bytes = text.utf8
        guard bytes.count > limit else { return Array(bytes) }
        var kept = Array(bytes.prefix(limit + 1))
        while let last = kept.last, last & 0xC0 == 0x80 { kept.removeLast() }
        kept.removeLast()
        return kept
    }
}
