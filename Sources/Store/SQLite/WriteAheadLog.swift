/// The contents of a database's write-ahead log, read without SQLite. SQLite silently drops frames that it does not accept. A value.
///
/// Layout and checksums: https://sqlite.org/fileformat2.html#the_write_ahead_log.
/// The wal-index: https://sqlite.org/walformat.html.
struct WriteAheadLog: Equatable {
    /// Bytes.
    let size: Int64
    let pageSize: Int
    /// As in the header.
    let salts: [UInt8]
    /// Frames up to the last commit.
    private(set) var committed: UInt32 = 0
    /// Frames with valid checksums, including uncommitted ones.
    private(set) var valid: UInt32 = 0
    /// Whether a damaged or truncated frame of this log (by its salts) follows.
    private(set) var isTorn = false
    /// `PRAGMA user_version` in the newest committed copy of the first page; nil: the page is not in the log.
    private(set) var storeID: UInt32?

    private static let headerBytes = 32
    private static let frameHeaderBytes = 24
    /// Offset of the user version in the first page.
    private static let userVersionAt = 60

    /// Nil if the file is no log (too short, another magic number, a wrong checksum). Throws if it cannot be read. Blocks.
    init?(path: String) throws {
        guard let file = FileReader(path: path) else { throw FileFailure("read", path) }
        let header = try file.read(Self.headerBytes)
        guard header.count == Self.headerBytes, Self.word(header, 0) & ~1 == 0x377F_0682, Self.word(header, 4) == 3_007_000 else {
            return nil
        }
        let isBigEndian = Self.word(header, 0) & 1 == 1
        var sum = Checksum(isBigEndian: isBigEndian)
        sum.add(header[0..<24])
        guard sum.equals(header, at: 24) else { return nil }
        let pageSize = Int(Self.word(header, 8))
        guard (512...65_536).contains(pageSize), pageSize & (pageSize - 1) == 0 else { return nil }
        self.pageSize = pageSize
        self.salts = Array(header[16..<24])
        self.size = FileIdentity(path: path)?.size ?? 0
        var pending: UInt32?
        while true {
            let frame = try file.read(Self.frameHeaderBytes + pageSize)
            guard !frame.isEmpty else { break }
            // Frames with other salts are from an earlier use of the file; that is no damage.
            guard frame.count >= 16, Array(frame[8..<16]) == self.salts else {
                self.isTorn = frame.count < 16
                break
            }
            guard frame.count == Self.frameHeaderBytes + pageSize else {
                self.isTorn = true
                break
            }
            sum.add(frame[0..<8])
            sum.add(frame[Self.frameHeaderBytes...])
            guard sum.equals(frame, at: 16) else {
                self.isTorn = true
                break
            }
            self.valid += 1
            if Self.word(frame, 0) == 1 { pending = Self.word(frame, Self.frameHeaderBytes + Self.userVersionAt) }
            if Self.word(frame, 4) != 0 {
                self.committed = self.valid
                if let pending { self.storeID = pending }
            }
        }
    }

    fileprivate static func word(_ bytes: [UInt8], _ at: Int) -> UInt32 {
        UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16 | UInt32(bytes[at + 2]) << 8 | UInt32(bytes[at + 3])
    }

    /// Two sums over pairs of 32-bit integers, in the magic number's byte order.
    private struct Checksum {
        let isBigEndian: Bool
        private var first: UInt32 = 0
        private var second: UInt32 = 0

        init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

        /// Adds bytes; their count is a multiple of eight.
        mutating func add(_ bytes: ArraySlice<UInt8>) {
            bytes.withUnsafeBytes { bytes in
                var at = 0
                while at + 8 <= bytes.count {
                    let left = bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self)
                    let right = bytes.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
                    self.first &+= (self.isBigEndian ? UInt32(bigEndian: left) : UInt32(littleEndian: left)) &+ self.second
                    self.second &+= (self.isBigEndian ? UInt32(bigEndian: right) : UInt32(littleEndian: right)) &+ self.first
                    at += 8
                }
            }
        }

        func equals(_ bytes: [UInt8], at: Int) -> Bool {
            self.first == WriteAheadLog.word(bytes, at) && self.second == WriteAheadLog.word(bytes, at + 4)
        }
    }
}

/// The index beside the log, as left by the last process with the store open. A value.
struct WriteAheadIndex: Equatable {
    /// Committed frames.
    let frames: UInt32
    /// Committed frames that the database already has.
    let backfilled: UInt32
    let salts: [UInt8]

    /// Nil if the index is missing or incomplete.
    init?(path: String) {
        guard let file = FileReader(path: path), let bytes = try? file.read(136), bytes.count == 136 else { return nil }
        // The header is stored twice, for readers during a write; numbers are in native byte order.
        guard Array(bytes[0..<48]) == Array(bytes[48..<96]), bytes[12] == 1 else { return nil }
        func word(_ at: Int) -> UInt32 { bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: UInt32.self) } }
        guard word(0) == 3_007_000 else { return nil }
        self.frames = word(16)
        self.backfilled = word(96)
        self.salts = Array(bytes[32..<40])
    }

    /// Maximum restarts of the log by SQLite since the index was written to disk.
    private static let mostRestarts: UInt32 = 1 << 16

    /// Whether a power cut left the index behind its log. The system writes the index at any time. SQLite increments the first salt each
    /// time it restarts the log.
    func isBehind(_ log: WriteAheadLog) -> Bool {
        (1...Self.mostRestarts).contains(WriteAheadLog.word(log.salts, 0) &- WriteAheadLog.word(self.salts, 0))
    }
}
