import Media
import NIOCore
import Testing

@testable import Relay

/// Random publishing, takeovers, returns, joins, departures and short writes over two loops. Each viewer's bytes are decoded and compared
/// with the log of the stream.
@Suite struct ModelTests {
    @Test(arguments: 1...40) func random(_ seed: UInt64) async throws {
        var policy = RelayPolicy()
        policy.grace.cleanStopMs = 500
        policy.grace.brokenPipeMs = 1_500
        policy.ring.gopMs = 4_000
        try await RelayHarness.run(policy, sendsPerTurn: seed % 2 == 0 ? 2 : RelayLoop.usualSendsPerTurn) { relay in
            var world = World(relay, policy, try await relay.acquire(), SeededGenerator(seed: seed))
            for _ in 0..<400 { try await world.step() }
            try await world.finish()
        }
    }

    /// A message or change as the ring numbers it, with the headers in force before.
    private struct Entry {
        var item: StreamState.Item
        var headers: [Int]
    }

    /// `@unchecked Sendable`: the viewer is touched on its loop only.
    private struct Audience: @unchecked Sendable {
        let sink: FakeSink
        let viewer: Viewer
        let streamID: UInt32
        /// Sequence number at which it starts.
        let start: Int
        let prelude: [Received]
        var isGone = false
    }

    private struct World {
        let relay: RelayHarness
        let stream: Relay.Stream
        var random: SeededGenerator
        /// The same rules, fed the same events: the stream's expected state.
        var model: StreamState
        var log: [Entry] = []
        var headers: [Int] = []
        var audience: [Audience] = []
        var token: StreamState.Token?
        var nextID = 1
        var timestamp: Int64 = 0
        var needsKeyframe = true

        init(_ relay: RelayHarness, _ policy: RelayPolicy, _ stream: Relay.Stream, _ random: SeededGenerator) {
            self.relay = relay
            self.stream = stream
            self.random = random
            self.model = StreamState(grace: policy.grace)
        }

        mutating func step() async throws {
            switch Int.random(in: 0..<100, using: &self.random) {
            case 0..<45: try await self.publish()
            case 45..<75: try await self.makeRoom()
            case 75..<83: try await self.join()
            case 83..<86: try await self.part()
            case 86..<90: try await self.claim()
            case 90..<92: try await self.leave()
            default: try await self.pass(Int64.random(in: 1...700, using: &self.random))
            }
        }

        private mutating func note(_ items: [StreamState.Item]) {
            for item in items {
                switch item {
                case .frame, .change: self.log.append(Entry(item: item, headers: self.headers))
                case .prelude(let frames): self.headers = frames.map { Received($0).id }
                case .end: self.headers = []
                case .dropGOP, .flush, .active, .quiet: break
                }
            }
        }

        private mutating func publish() async throws {
            guard let token = self.token else { return try await self.claim() }
            var frames: [Frame] = []
            for _ in 0..<Int.random(in: 1...6, using: &self.random) {
                let bytes = Int.random(in: 0...300, using: &self.random)
                self.nextID += 1
                self.timestamp += Int64.random(in: 0...30, using: &self.random)
                switch Int.random(in: 0..<40, using: &self.random) {
                case 0: frames.append(try Make.metadata(self.nextID, at: self.timestamp))
                case 1: frames.append(try Make.videoHeader(self.nextID, at: self.timestamp))
                case 2: frames.append(try Make.audioHeader(self.nextID, at: self.timestamp))
                case 3: frames.append(try Make.script(self.nextID, at: self.timestamp))
                case 4: frames.append(try Make.endOfSequence(self.nextID, at: self.timestamp))
                case 5..<9:
                    frames.append(try Make.key(self.nextID, at: self.timestamp, bytes: bytes * 4))
                    self.needsKeyframe = false
                case 9..<24 where !self.needsKeyframe: frames.append(try Make.inter(self.nextID, at: self.timestamp, bytes: bytes))
                default: frames.append(try Make.audio(self.nextID, at: self.timestamp, bytes: bytes / 4))
                }
            }
            RelayLoop.publish(frames, to: self.stream, token: token)
            var items: [StreamState.Item] = []
            for frame in frames { self.model.ingest(frame, token: token, nowMs: self.relay.clock.nowMs, items: &items) }
            self.note(items)
        }

        private mutating func claim() async throws {
            var items: [StreamState.Item] = []
            let expected: Result<StreamState.Token, ClaimRefusal>
            do throws(ClaimRefusal) {
                expected = .success(try self.model.claim(PublisherIdentity("device"), nowMs: self.relay.clock.nowMs, items: &items).token)
            } catch {
                expected = .failure(error)
            }
            self.note(items)
            let got: Result<StreamState.Token, ClaimRefusal>
            do {
                got = .success(try await self.relay.claim(self.stream))
            } catch let error as ClaimRefusal {
                got = .failure(error)
            }
            #expect(got == expected)
            guard case .success(let token) = got else { return }
            self.token = token
            self.timestamp = Int64.random(in: 0...100_000, using: &self.random)
            // A run may begin with inter frames after a return (they are dropped). A run on an idle stream begins with a keyframe.
            self.needsKeyframe = items.contains { if case .change = $0 { true } else { false } }
        }

        private mutating func leave() async throws {
            guard let token = self.token else { return }
            let isClean = Bool.random(using: &self.random)
            RelayLoop.leave(self.stream, token: token, clean: isClean)
            self.model.leave(token: token, clean: isClean, nowMs: self.relay.clock.nowMs)
            self.token = nil
        }

        /// Advances the clock and lets the loops check their deadlines.
        private mutating func pass(_ ms: Int64) async throws {
            try await self.relay.settle()
            self.relay.clock.advance(ms)
            try await self.relay.sweep()
            var items: [StreamState.Item] = []
            _ = self.model.tick(nowMs: self.relay.clock.nowMs, items: &items)
            self.note(items)
        }

        private mutating func join() async throws {
            let streamID: UInt32 = Bool.random(using: &self.random) ? 1 : UInt32.random(in: 2...9, using: &self.random)
            let loop = Bool.random(using: &self.random) ? self.relay.home : self.relay.other
            // Settles first, so that the viewer's start is known; racing joins have their own test.
            try await self.relay.settle()
            let sink = try await self.relay.join(self.stream, on: loop, streamID: streamID) { $0.room = 0 }
            let (start, prelude) = try await self.relay.on(loop) { _ in
                let viewer = sink.viewers[0]
                let bytes = viewer.prelude.flatMap { Array(UnsafeRawBufferPointer(start: $0.start, count: $0.length)) }
                return (try #require(viewer.cursor), try bytes.messages())
            }
            #expect(start <= self.log.count)
            self.audience.append(Audience(sink: sink, viewer: sink.viewers[0], streamID: streamID, start: start, prelude: prelude))
            let expected = start < self.log.count ? self.log[start].headers : self.headers
            #expect(prelude.map(\.id) == expected)
            if start < self.log.count, case .frame(let key) = self.log[start].item {
                #expect(key.isKeyframe && prelude.allSatisfy { $0.timestamp == key.timestamp })
            }
        }

        private mutating func part() async throws {
            guard let index = self.audience.indices.randomElement(using: &self.random), !self.audience[index].isGone else { return }
            self.audience[index].isGone = true
            _ = try await self.relay.with(self.audience[index].sink) { $0.close() }
        }

        private mutating func makeRoom() async throws {
            guard let one = self.audience.randomElement(using: &self.random) else { return }
            let room = Int.random(in: 0..<5, using: &self.random) == 0 ? nil : Int.random(in: 0...2_000, using: &self.random)
            let limit = Bool.random(using: &self.random) ? Int.max : Int.random(in: 1...400, using: &self.random)
            one.sink.loop.eventLoop.execute {
                guard one.sink.isOpen else { return }
                one.sink.writeLimit = limit
                one.sink.makeRoom(room)
            }
        }

        mutating func finish() async throws {
            try await self.relay.settle()
            for one in self.audience {
                let isOpen = try await self.relay.with(one.sink) { sink in
                    if sink.isOpen { sink.drain() }
                    return sink.isOpen
                }
                try await self.check(one, wasOpen: isOpen)
                _ = try await self.relay.with(one.sink) { $0.close() }
            }
            self.relay.registry.release(self.stream)
        }

        /// Expects headers, then the log from the viewer's start on. Only video up to a keyframe may be missing, and it is counted.
        private func check(_ one: Audience, wasOpen: Bool) async throws {
            let (bytes, told, skipped) = try await self.relay.with(one.sink) { sink in
                (sink.bytes, sink.told.map(\.change), one.viewer.gate.skippedFrames)
            }
            // A closed connection may have ended inside a message.
            var received = wasOpen ? try bytes.messages() : try bytes.wholeMessages()
            #expect(received.allSatisfy { $0.streamID == one.streamID })
            for index in received.indices { received[index].streamID = 1 }
            let headers = received.prefix(one.prelude.count)
            #expect(headers == one.prelude.prefix(headers.count))
            var rest = received.dropFirst(headers.count)
            var left = 0
            var mustBeKeyframe = false
            var changes: [StreamChange] = []
            for entry in self.log[one.start...] {
                switch entry.item {
                case .change(let change, _): if wasOpen || changes.count < told.count { changes.append(change) }
                case .frame(let frame) where rest.first == Received(frame):
                    #expect(!(mustBeKeyframe && frame.kind == .video && frame.tag.flags.contains(.coded)) || frame.isKeyframe)
                    if frame.isKeyframe { mustBeKeyframe = false }
                    rest = rest.dropFirst()
                case .frame(let frame):
                    if !wasOpen, rest.isEmpty { continue }
                    #expect(frame.kind == .video && frame.tag.flags.contains(.coded), "only pictures are ever left out")
                    left += 1
                    mustBeKeyframe = true
                default: break
                }
            }
            #expect(rest.isEmpty, "nothing out of order, twice, or made up")
            #expect(told == changes)
            // Coded frames only: a header's timestamp says little, and the next publisher does not continue from it.
            let times = try received.filter { try $0.frame().tag.flags.contains(.coded) }.map(\.timestamp)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 }, "time does not go back")
            if wasOpen { #expect(left == skipped) }
        }
    }
}

extension [UInt8] {
    /// The complete messages; the bytes may end inside one.
    func wholeMessages() throws -> [Received] {
        var bytes = ByteBuffer(bytes: self)
        var messages: [Received] = []
        while let message = try Received(from: &bytes) { messages.append(message) }
        return messages
    }
}
