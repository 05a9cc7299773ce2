import HTTPServer
import NIOCore

extension FuzzTarget {
    /// A browser's bytes after the handshake. Cuts make no difference, and at most two messages are held.
    static let webSocket = FuzzTarget("websocket", maxLength: 4_096) { input in
        var input = input
        // Small enough for the limit to be met.
        let limit = 1 + Int(input.byte()) * 8
        let cuts = Cuts(input.byte())
        let bytes = input.rest
        let whole = WebSocketRun(bytes, .none, limit)
        expect(whole == WebSocketRun(bytes, cuts, limit), "cuts show")
        for input in whole.inputs {
            switch input {
            case .text(let text): expect(text.utf8.count <= limit, "a text of \(text.utf8.count) bytes; the limit is \(limit)")
            case .binary(let data): expect(data.readableBytes <= limit, "\(data.readableBytes) bytes; the limit is \(limit)")
            case .ping(let data): expect(data.readableBytes <= 125, "a ping of \(data.readableBytes) bytes")
            case .pong: break
            case .close(let code): expect(code.map { $0 >= 1_000 && $0 < 5_000 } ?? true, "close code \(code ?? 0)")
            }
        }
        // A server sends the reason back in a close frame, which has room for 123 bytes (RFC 6455 section 5.5).
        if let error = whole.error { expect((1_000..<1_010).contains(error.code) && error.reason.utf8.count <= 123, "\(error)") }
    }
}

private struct WebSocketRun: Equatable {
    var inputs: [WebSocketReader.Input] = []
    var error: WebSocketError?

    init(_ bytes: [UInt8], _ cuts: Cuts, _ limit: Int) {
        var reader = WebSocketReader(messageBytes: limit)
        for piece in cuts.pieces(of: bytes) {
            var piece = piece
            let count = piece.readableBytes
            reader.append(&piece)
            do throws(WebSocketError) {
                while let input = try reader.next() { self.inputs.append(input) }
            } catch {
                self.error = error
                return
            }
            expect(reader.heldBytes < 14 + 125 + 2 * limit + count, "\(reader.heldBytes) bytes are held")
        }
    }
}
