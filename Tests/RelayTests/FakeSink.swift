import LibC
import NIOCore
import Testing

@testable import Relay

/// A connection that records what it is sent and limits how much it accepts. Like the socket writer, it keeps the rest of a cut message;
/// the next one may start only when that is out.
///
/// `@unchecked Sendable`: touched on its loop only.
final class FakeSink: ViewerSink, @unchecked Sendable {
    let loop: RelayLoop
    private(set) var bytes: [UInt8] = []
    /// Bytes that the next writes accept; `nil` for no limit.
    var room: Int?
    /// The most bytes that a single write accepts.
    var writeLimit = Int.max
    var isOpen = true
    var viewers: [Viewer] = []
    /// Changes, and their positions in `bytes`.
    private(set) var told: [(streamID: UInt32, change: StreamChange, at: Int)] = []
    private(set) var tooFarBehindMs: [Int64] = []
    private(set) var isShed = false
    private(set) var writes = 0
    /// Address of the last vector of each write.
    private(set) var addresses: [UnsafeRawPointer] = []
    private(set) var lowWater: [Int] = []
    var unsent = 0
    /// Runs inside every write, after its bytes were recorded.
    var onWrite: (() -> Void)?
    /// Messages of the wire format `packets`.
    var delivered: [[UInt8]] = []
    private var rest: (message: EncodedMessage, header: [UInt8], offset: Int)?

    init(_ loop: RelayLoop) {
        self.loop = loop
    }

    /// Nil: everything goes through `write`, where tests can watch it.
    var line: DirectLine? { nil }
    var isReady: Bool { self.isOpen && self.rest == nil && self.room != 0 }
    var holdsRest: Bool { self.rest != nil }

    func write(_ vectors: UnsafeBufferPointer<IOVector>, bytes: Int) -> Int {
        self.loop.eventLoop.preconditionInEventLoop()
        #expect(vectors.reduce(0) { $0 + $1.iov_len } == bytes)
        #expect(self.rest == nil, "a message is started only when the one before is out")
        self.writes += 1
        if let address = vectors.last?.iov_base { self.addresses.append(UnsafeRawPointer(address)) }
        let count = self.accept(bytes)
        var left = count
        for vector in vectors {
            let part = min(left, vector.iov_len)
            self.bytes.append(contentsOf: UnsafeRawBufferPointer(start: vector.iov_base, count: part))
            left -= part
        }
        self.onWrite?()
        return count
    }

    private func accept(_ wanted: Int) -> Int {
        let count = min(wanted, self.writeLimit, self.room ?? Int.max)
        self.room = self.room.map { $0 - count }
        return count
    }

    func deliver(_ message: EncodedMessage) {
        self.loop.eventLoop.preconditionInEventLoop()
        self.delivered.append([UInt8](UnsafeRawBufferPointer(start: message.start, count: message.length)))
    }

    func finish(_ message: EncodedMessage, header: UnsafeRawBufferPointer, from offset: Int) {
        #expect(self.rest == nil && offset >= 0 && offset < message.length)
        #expect(header.isEmpty || header.count == Int(message.headerLength))
        self.rest = (message, Array(header), offset)
    }

    func notify(_ viewer: Viewer, _ change: StreamChange) {
        self.told.append((viewer.streamID, change, self.bytes.count))
    }

    func fellTooFarBehind(_ viewer: Viewer, ms: Int64) {
        self.tooFarBehindMs.append(ms)
        self.close()
    }

    func shed(_ viewer: Viewer) {
        self.isShed = true
        self.close()
    }

    func unsentBytes() -> Int { self.unsent }

    func setLowWater(_ bytes: Int) { self.lowWater.append(bytes) }

    // MARK: Peer

    /// The peer reads: makes room for `count` more bytes, or for any number.
    func makeRoom(_ count: Int? = nil) {
        self.room = count
        if let rest = self.rest, let start = rest.message.start {
            let end = rest.offset + self.accept(rest.message.length - rest.offset)
            for index in rest.offset..<end {
                self.bytes.append(
                    index < rest.header.count ? rest.header[index] : start.load(fromByteOffset: index, as: UInt8.self))
            }
            self.rest = end < rest.message.length ? (rest.message, rest.header, end) : nil
        }
        guard self.isReady else { return }
        for viewer in self.viewers { self.loop.pump(viewer) }
    }

    /// The peer reads until nothing is pending.
    func drain() {
        self.writeLimit = .max
        self.makeRoom()
    }

    @discardableResult
    func play(_ stream: Relay.Stream, _ wireFormat: WireFormat = .rtmp, streamID: UInt32 = 1, tracks: TrackChoice = .standard) -> Viewer {
        let viewer = Viewer(
            stream: stream, wireFormat, streamID: streamID, tracks: tracks, sink: self, nowMs: self.loop.nowMs)
        self.viewers.append(viewer)
        #expect(stream.enterViewer(limit: .max))
        self.loop.attach(viewer)
        return viewer
    }

    func stop(_ viewer: Viewer) {
        self.viewers.removeAll { $0 === viewer }
        self.loop.detach(viewer)
        viewer.stream.leaveViewer()
    }

    func close() {
        self.isOpen = false
        self.onWrite = nil
        self.rest = nil
        for viewer in self.viewers { self.stop(viewer) }
    }
}
