import NIOCore
import RTMP

extension FuzzTarget {
    /// A server's messages to our link, which connects, publishes and plays.
    static let clientSession = FuzzTarget("client-session", maxLength: 4_096) { input in
        var input = input
        let cuts = Cuts(input.byte())
        let bytes = input.rest
        expect(areSame(ClientRun(bytes, .none), ClientRun(bytes, cuts)), "cuts show")
    }
}

private struct ClientRun: Equatable {
    /// The session's outputs except acknowledgements, which depend on the cuts.
    private var outputs: [ClientSessionOutput] = []
    private var error: RTMPError?

    init(_ bytes: [UInt8], _ cuts: Cuts) {
        var session = ClientSession(limits: ChunkFeed.limits)
        session.connect(app: "live", tcUrl: "rtmp://host/live")
        session.createStream()
        session.publish("cam", on: 1)
        session.play("cam", on: 2)
        while session.nextOutput() != nil {}
        var outputs: [ClientSessionOutput] = []
        self.error = ChunkFeed.read(bytes, cuts, maySendMedia: true) { (message, decoder) throws(RTMPError) in
            try session.receive(message)
            session.bytesReceived(decoder.receivedBytes)
            var count = 0
            while let output = session.nextOutput() {
                count += 1
                if case .send(let sent) = output {
                    // No server message makes a client send more than a few bytes.
                    expect(sent.payload.readableBytes <= 64, "an answer of \(sent.payload.readableBytes) bytes")
                    guard sent.type != .acknowledgement else { continue }
                }
                outputs.append(output)
            }
            expect(count <= 2, "\(count) outputs of one message")
        }
        self.outputs = outputs
    }
}
