import HTTPServer
package import Listening
package import NIOCore
package import Rooms
package import Support

/// The first frames and the start position of a subscriber.
package struct EventsStart: Sendable {
    /// The hello, and a gap if there is one, as whole frames.
    package let frames: [ByteBuffer]
    /// Events after this one follow.
    package let position: Int64
    /// Nil: all rooms.
    package let room: RoomID?
    /// Only these, and no transient messages; empty: all.
    package let kinds: Set<RoomEvent.Kind>
    package let tokenID: Int64
    /// The part of the server that the token covers.
    package let scope: TokenScope
    /// Rooms in the hello; needed when the token is limited to apps, as transient messages do not name theirs.
    package let rooms: Set<RoomID>

    package init(
        frames: [ByteBuffer], position: Int64, room: RoomID?, kinds: Set<RoomEvent.Kind> = [], tokenID: Int64, scope: TokenScope = .all,
        rooms: Set<RoomID> = []
    ) {
        self.frames = frames
        self.position = position
        self.room = room
        self.kinds = kinds
        self.tokenID = tokenID
        self.scope = scope
        self.rooms = rooms
    }
}

/// One subscriber of the event feed: a WebSocket. Loop-bound.
///
/// Has no queue. It writes from the loop's ring or a page of the store while the socket accepts more, then resumes at its cursor.
package final class EventsConnection: ChannelInboundHandler, EventSubscriber, Sweepable {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    package static let heartbeatSeconds = Int(WebSocketLife.pingMs / 1_000)
    /// A socket that accepts nothing for this long is closed.
    private static let stuckMs: Int64 = 60_000
    /// Frames per second that a client may send.
    private static let frameLimit = 200
    /// Failed reads of the store in a row, a second apart, that close the feed.
    private static let failureLimit = 10

    private let start: EventsStart
    private let place: EventHub.Place
    private let hub: EventHub
    private let events: StoredEvents
    private let counters: ServerCounters
    private let sweepers: LoopSweepers
    private let tokens: TokenWatch
    private let clock: RoomClock

    private var life = WebSocketLife(nowMs: LoopSweeper.nowMs)
    private var context: ChannelHandlerContext?
    private var sweeper: LoopSweeper?
    private var feed: LoopFeed?
    private var cursor: FeedCursor
    private var reader = WebSocketReader()
    private var isPumping = false
    private var failures = 0
    private var retryMs: Int64 = 0
    private var isRetryDue = false
    private var stuckSinceMs: Int64?
    /// Start of the window in which frames are counted, and the count at that time.
    private var frameWindow = (startMs: Int64(0), frames: 0)
    /// The payload of a ping that could not be answered yet; only the newest is (RFC 6455 §5.5.3).
    private var owedPong: ByteBuffer?
    /// Rooms that a token limited to apps is known to see.
    private var knownRooms: Set<RoomID>
    private static let knownRoomLimit = 10_000

    package init(
        _ start: EventsStart, place: EventHub.Place, hub: EventHub, sweepers: LoopSweepers, tokens: TokenWatch, clock: RoomClock,
        events: StoredEvents, counters: ServerCounters
    ) {
        self.start = start
        self.place = place
        self.hub = hub
        self.sweepers = sweepers
        self.tokens = tokens
        self.clock = clock
        self.events = events
        self.counters = counters
        self.cursor = FeedCursor(after: start.position)
        self.knownRooms = start.rooms
    }

    // MARK: - Life

    /// Milliseconds of the sweeper's steady clock.
    private var nowMs: Int64 { LoopSweeper.nowMs }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let sweeper = self.sweepers.of(context.eventLoop)
        self.sweeper = sweeper
        self.life = WebSocketLife(nowMs: self.nowMs)
        // The feed also works on systems without this option.
        try? context.channel.syncOptions?.setOption(.tcpOption(.tcpNotSentLowWater), value: ViewerSocket.feedNotSentBytes)
        sweeper.add(self)
        for frame in self.start.frames { context.write(self.wrapOutboundOut(frame), promise: nil) }
        context.flush()
        self.feed = self.hub.join(self, on: context.eventLoop)
        self.pump()
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.leave()
        self.sweeper?.remove(self)
        self.life.end()
        self.context = nil
    }

    package func channelInactive(context: ChannelHandlerContext) {
        self.leave()
        self.life.end()
        context.fireChannelInactive()
    }

    private func leave() {
        guard let feed = self.feed else { return }
        self.feed = nil
        self.hub.leave(self, feed)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: self.close(1001, "the server is shutting down")
        case ChannelEvent.inputClosed as ChannelEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// Sends code and reason, then waits a moment for the peer's close frame.
    private func close(_ code: UInt16, _ reason: String, listens: Bool = true) {
        guard let context = self.context, self.life.beginClose(nowMs: self.nowMs, listens: listens) else { return }
        self.leave()
        context.writeAndFlush(self.wrapOutboundOut(WebSocketWriter.close(code, reason)), promise: nil)
    }

    package func sweep(nowMs: Int64) {
        guard let context = self.context else { return }
        if self.life.isOpen, self.tokens.isRevoked(self.start.tokenID) {
            self.close(1008, "the token was revoked")
        } else if self.life.isOpen, !context.channel.isWritable {
            // Neither pings nor pongs get through.
            let since = self.stuckSinceMs ?? nowMs
            self.stuckSinceMs = since
            if nowMs - since >= Self.stuckMs { self.close(1013, "too slow; resume with after=") }
        } else {
            switch self.life.due(nowMs: nowMs) {
            case .nothing: break
            case .ping: context.writeAndFlush(self.wrapOutboundOut(WebSocketWriter.ping()), promise: nil)
            case .dead: self.close(1013, "no answer to pings; resume with after=")
            case .cut: context.close(promise: nil)
            }
        }
        guard self.life.isOpen, self.failures > 0, nowMs >= self.retryMs else { return }
        self.isRetryDue = true
        self.pump()
    }

    // MARK: - Out

    package func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            self.stuckSinceMs = nil
            self.life.extend(nowMs: self.nowMs)
            if let payload = self.owedPong {
                self.owedPong = nil
                self.pong(payload)
            }
            self.pump()
        }
        context.fireChannelWritabilityChanged()
    }

    package func pump() {
        guard self.life.isOpen, !self.isPumping, let context = self.context, let feed = self.feed else { return }
        // A flush may make the channel writable again, which calls this method before the flush returns.
        self.isPumping = true
        defer { self.isPumping = false }
        while self.writeFromRing(feed, context) { context.flush() }
    }

    package func notify(_ frame: ByteBuffer, of room: RoomID) {
        guard self.life.isOpen, let context = self.context, context.channel.isWritable,
            self.start.kinds.isEmpty, self.start.room == nil || self.start.room == room, self.sees(room)
        else { return }
        context.writeAndFlush(self.wrapOutboundOut(frame), promise: nil)
    }

    private func sees(_ room: RoomID) -> Bool {
        self.start.scope.holds(name: room.rawValue) && (self.start.scope.apps.isEmpty || self.knownRooms.contains(room))
    }

    private func learn(_ rooms: some Sequence<RoomID>) {
        guard !self.start.scope.apps.isEmpty else { return }
        if self.knownRooms.count >= Self.knownRoomLimit { self.knownRooms.removeAll() }
        self.knownRooms.formUnion(rooms)
    }

    /// Writes as much as the channel accepts. Returns whether anything was written.
    private func writeFromRing(_ feed: LoopFeed, _ context: ChannelHandlerContext) -> Bool {
        var wrote = false
        while context.channel.isWritable {
            if self.failures > 0, !self.isRetryDue { break }
            switch self.cursor.next(feed.ring) {
            case .wait: return wrote
            case .readStore(let after):
                self.isRetryDue = false
                if self.cursor.hasCaughtUp { self.counters.update { $0.eventFeedsBehind += 1 } }
                self.readStore(after, context)
                return wrote
            case .readRing:
                guard let entry = feed.ring.first(after: self.cursor.position) else { return wrote }
                self.cursor.sent(entry.id)
                guard self.start.room == nil || entry.room == self.start.room,
                    self.start.kinds.isEmpty || self.start.kinds.contains(entry.kind),
                    self.start.scope.holds(app: entry.app, subject: entry.subject)
                else { continue }
                self.learn(entry.room.map { [$0] } ?? [])
                context.write(self.wrapOutboundOut(entry.frame), promise: nil)
                wrote = true
            }
        }
        return wrote
    }

    private func readStore(_ after: Int64, _ context: ChannelHandlerContext) {
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let events = self.events
        Task {
            let page = await events.page(after: after)
            bound.eventLoop.execute { bound.value.pageCame(page) }
        }
    }

    private func pageCame(_ page: StoredEvents.Page?) {
        guard self.life.isOpen, let context = self.context else { return }
        guard let page else {
            self.cursor.pageFailed()
            self.failures += 1
            self.retryMs = self.nowMs + 1_000
            if self.failures >= Self.failureLimit { self.close(1011, "the events cannot be read; resume with after=") }
            return
        }
        self.failures = 0
        self.learn(page.rooms)
        self.cursor.pageArrived(last: page.last, isFull: page.isFull)
        if page.frames.readableBytes > 0 { context.writeAndFlush(self.wrapOutboundOut(page.frames), promise: nil) }
        self.pump()
    }

    // MARK: - In

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        guard self.life.isListening else { return }
        let before = self.reader.frames
        self.reader.append(&bytes)
        do throws(WebSocketError) {
            while self.life.isListening, let input = try self.reader.next() {
                self.receive(input, context)
                guard self.countFrames(since: before) else { return }
            }
            _ = self.countFrames(since: before)
        } catch {
            self.fail(error, context)
        }
    }

    private func fail(_ error: WebSocketError, _ context: ChannelHandlerContext) {
        if self.life.isOpen {
            self.close(error.code, error.reason, listens: false)
        } else {
            context.close(promise: nil)
        }
    }

    /// Counts frames; returns false if the client sends too many.
    private func countFrames(since before: Int) -> Bool {
        let frames = self.reader.frames - before
        guard frames > 0 else { return true }
        let nowMs = self.nowMs
        self.life.received(nowMs: nowMs)
        if nowMs - self.frameWindow.startMs >= 1_000 { self.frameWindow = (nowMs, before) }
        guard self.reader.frames - self.frameWindow.frames > Self.frameLimit else { return true }
        self.close(1008, "more than \(Self.frameLimit) frames a second", listens: false)
        return false
    }

    private func receive(_ input: WebSocketReader.Input, _ context: ChannelHandlerContext) {
        switch input {
        case .ping(let payload): self.pong(payload)
        case .text(let text):
            guard ClientMessage.isPing(text), self.life.isOpen, context.channel.isWritable else { return }
            context.writeAndFlush(self.wrapOutboundOut(WebSocketWriter.text(EventMessage.pong(at: self.clock.now()))), promise: nil)
        case .binary, .pong: break
        case .close(let code):
            if self.life.peerCloses(nowMs: self.nowMs) {
                self.leave()
                context.writeAndFlush(self.wrapOutboundOut(WebSocketWriter.close(code ?? 1000, "")), promise: nil)
            }
            context.closeWhenWritten()
        }
    }

    private func pong(_ payload: ByteBuffer) {
        guard self.life.isOpen, let context = self.context else { return }
        guard context.channel.isWritable else {
            self.owedPong = payload
            return
        }
        context.writeAndFlush(self.wrapOutboundOut(WebSocketWriter.pong(payload)), promise: nil)
    }
}
