import NIOCore
import RTMP

extension FuzzTarget {
    /// A whole connection of any client: chunks, commands, and a server that accepts some requests.
    static let serverSession = FuzzTarget("server-session", maxLength: 4_096) { input in
        var input = input
        let choices = input.byte()
        let cuts = Cuts(input.byte())
        let bytes = input.rest
        expect(areSame(ServerRun(bytes, .none, choices), ServerRun(bytes, cuts, choices)), "cuts show")
    }
}

private struct ServerRun: Equatable {
    /// The session's outputs except acknowledgements, which depend on the cuts.
    private var outputs: [ServerSessionOutput] = []
    private var error: RTMPError?

    init(_ bytes: [UInt8], _ cuts: Cuts, _ choices: UInt8) {
        var run = Driven(choices: choices)
        self.error = ChunkFeed.read(bytes, cuts, maySendMedia: false) { (message, decoder) throws(RTMPError) in
            try run.receive(message, &decoder)
        }
        self.outputs = run.outputs
    }

    /// A session, and the decisions on its requests.
    private struct Driven {
        var session = ServerSession(limits: ChunkFeed.limits)
        var outputs: [ServerSessionOutput] = []
        var choices: UInt8
        private static let refusal = Status(StatusCode.publishBadName, level: .error, "no")

        init(choices: UInt8) { self.choices = choices }

        mutating func receive(_ message: Message, _ decoder: inout ChunkDecoder) throws(RTMPError) {
            try self.session.receive(message)
            self.session.bytesReceived(decoder.receivedBytes)
            var count = 0
            while let output = self.session.nextOutput() {
                count += 1
                if case .send(let sent) = output {
                    expect(sent.payload.readableBytes < 2_048, "an answer of \(sent.payload.readableBytes) bytes")
                    guard sent.type != .acknowledgement else { continue }
                }
                self.outputs.append(output)
                self.run(output, &decoder)
            }
            // A message may end every message stream, with two outputs each.
            expect(count <= 2 * ChunkFeed.limits.messageStreams + 16, "\(count) outputs of one message")
        }

        private mutating func run(_ output: ServerSessionOutput, _ decoder: inout ChunkDecoder) {
            switch output {
            case .connect:
                if self.choose(8) == 7 { self.session.rejectConnect(Self.refusal) } else { self.session.acceptConnect() }
            case .publish(let id, let address):
                expect(!address.name.isEmpty, "a publish without a name")
                switch self.choose(4) {
                case 0: break
                case 1:
                    self.session.rejectPublish(id, Self.refusal)
                    expect(!self.session.isPublishing(id), "a refused publish is on")
                case let choice:
                    self.session.acceptPublish(id)
                    expect(self.session.isPublishing(id), "an accepted publish is not on")
                    decoder.publishAccepted()
                    if choice == 3 { self.session.publishEnded(id, Self.refusal) }
                }
            case .unpublish(let id):
                expect(!self.session.isPublishing(id), "an ended publish is on")
            case .play(let id, let address):
                expect(!address.name.isEmpty, "a play without a name")
                switch self.choose(4) {
                case 0: self.session.rejectPlay(id, Self.refusal)
                case 1: self.session.acceptPlay(id)
                case 2:
                    self.session.acceptPlay(id)
                    self.session.publisherArrived(id)
                    self.session.publisherLeft(id)
                default: self.session.playEnded(id, Self.refusal)
                }
            default: break
            }
        }

        private mutating func choose(_ count: UInt8) -> UInt8 {
            self.choices = self.choices &* 5 &+ 3
            return (self.choices >> 2) % count
        }
    }
}
