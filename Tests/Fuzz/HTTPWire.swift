import Listening
import Logging
import NIOCore
import NIOEmbedded
import Relay
import ServerConfiguration
import Support

@testable import HTTPServer

/// Stands where the socket is: takes what the server sends, and closes each direction on its own. Loop-bound.
final class HTTPWire: ChannelOutboundHandler {
    typealias OutboundIn = IOData

    private(set) var sent: [UInt8] = []
    /// The server has ended its output.
    private(set) var isOutputClosed = false
    private var unflushed: [(ByteBuffer, EventLoopPromise<Void>?)] = []
    private var wantsRead = false

    /// Bytes that were written and wait for a flush.
    var unflushedBytes: Int { self.unflushed.reduce(0) { $0 + $1.0.readableBytes } }

    /// Delivers bytes as a socket does, which reads when it is asked to, and asks by itself after each read.
    func deliver(_ bytes: ByteBuffer, to channel: EmbeddedChannel) {
        expect(self.wantsRead, "the server reads no more")
        self.wantsRead = false
        channel.pipeline.fireChannelRead(bytes)
        channel.pipeline.fireChannelReadComplete()
        if channel.isActive, !self.wantsRead { channel.read() }
    }

    func read(context: ChannelHandlerContext) { self.wantsRead = true }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(let bytes) = self.unwrapOutboundIn(data) else { fatalError("a file is sent") }
        expect(!self.isOutputClosed, "bytes behind the end: \(String(buffer: bytes))")
        self.unflushed.append((bytes, promise))
    }

    func flush(context: ChannelHandlerContext) {
        let due = self.unflushed
        self.unflushed = []
        for (bytes, promise) in due {
            self.sent += bytes.readableBytesView
            promise?.succeed()
        }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .output else { return context.close(mode: mode, promise: promise) }
        self.isOutputClosed = true
        promise?.succeed()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        let lost = self.unflushed
        self.unflushed = []
        for (_, promise) in lost { promise?.fail(ChannelError.ioOnClosedChannel) }
    }
}

/// A server with one place, so that a connection that keeps its own is noticed by the next one. Loop-bound.
struct FuzzHTTPServer {
    /// Small enough for the limits to be met.
    static let limits: HTTPLimits = {
        var limits = HTTPLimits()
        limits.headBytes = 1_024
        limits.headerFields = 20
        limits.connections = 1
        limits.perAddress = 1
        return limits
    }()

    let loop = EmbeddedEventLoop()
    let shared: HTTPServerChannel.Shared
    private let ledger = MemoryLedger(limit: 256 << 20)

    /// Connections come from a trusted proxy, which names its clients.
    private static let proxy: SocketAddress = {
        guard let address = try? SocketAddress(ipAddress: "192.0.2.1", port: 4_000) else { fatalError("no address") }
        return address
    }()
    private static let proxies = (try? CIDR.parseList("192.0.2.0/24")) ?? []

    init() {
        let log = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }
        let clients = ClientAddresses(trusted: Self.proxies, log: log)
        let counters = ServerCounters()
        let sweepers = LoopSweepers(self.loop)
        var access = ServerConfig.Access()
        access.trustedProxies = Self.proxies
        self.shared = HTTPServerChannel.Shared(
            limits: Self.limits, handoffs: [], sweepers: sweepers, access: access, clients: clients,
            proxies: ProxyEntrance(
                from: [], deadlineMs: 1_000, clients: clients, counters: counters, flood: LogRateLimiter(), sweepers: sweepers, log: log),
            counters: counters, ledger: self.ledger)
    }

    /// Opens a connection; `setUp` adds the server's handlers, before the connection is active.
    func open(_ setUp: (EmbeddedChannel, HTTPPlace) throws -> Void) -> (EmbeddedChannel, HTTPWire) {
        let channel = EmbeddedChannel(loop: self.loop)
        channel.remoteAddress = Self.proxy
        let wire = HTTPWire()
        do {
            let place = try self.shared.admit(channel)
            try channel.pipeline.syncOperations.addHandler(wire)
            try setUp(channel, place)
        } catch {
            fatalError("\(error)")
        }
        channel.connect(to: Self.proxy, promise: nil)
        expect(channel.isActive, "the connection is not active")
        channel.read()
        return (channel, wire)
    }

    func close(_ channel: EmbeddedChannel) {
        // Errors that no handler took are of no interest.
        _ = try? channel.finish(acceptAlreadyClosed: true)
        self.loop.run()
    }

    /// All connections are closed and their handlers gone.
    func checkNothingIsHeld() {
        expect(self.ledger.used == 0, "\(self.ledger.used) bytes are charged for connections that are gone")
    }
}
