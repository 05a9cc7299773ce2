package import Apps
import HTTPServer
package import NIOCore
import Support

/// The server's end of an app's WebSocket. Any thread; frames leave in the order of the calls.
package final class AppPeer: Sendable {
    package let id: ConnectionID
    private let socket: NIOLoopBound<AppSocket>

    init(_ id: ConnectionID, _ socket: NIOLoopBound<AppSocket>) {
        self.id = id
        self.socket = socket
    }

    /// Sends a whole frame. Cuts the connection when its backlog is too large.
    package func send(_ frame: ByteBuffer) { self.socket.eventLoop.execute { self.socket.value.send(frame) } }

    /// Sends a text message. Cuts the connection when its backlog is too large.
    func send(_ message: JSONValue) { self.send(WebSocketWriter.text(message.text)) }

    /// Sends a whole frame and calls `written` on the connection's loop: true when the socket has taken it, false when the connection ended before. A
    /// sender that waits for it keeps only one frame in memory, however slowly the peer reads.
    package func send(_ frame: ByteBuffer, written: @escaping @Sendable (Bool) -> Void) {
        self.socket.eventLoop.execute { self.socket.value.send(frame, written: written) }
    }

    /// Sends a close frame after all earlier frames.
    package func close(_ code: UInt16, _ reason: String) {
        self.socket.eventLoop.execute { self.socket.value.close(code, reason) }
    }
}

/// An app's side of a connection. Called on its loop.
package protocol AppSession: AnyObject {
    func opened(_ peer: AppPeer)
    /// A whole text message within the limits. False if this app does not accept it.
    func received(_ text: String) -> Bool
    /// Called once, when the connection has ended or is about to.
    func closed()
}

/// The bounds of a connection. A value.
package struct AppSocketLimits: Sendable {
    package var messageBytes = 64 << 10
    /// Messages per second; the burst is four times that.
    package var messageRate = 50
    package var backlogBytes = 256 << 10

    /// Messages rejected by the app, within ten seconds.
    static let badMessages = 20.0
    /// Pings, pongs and fragments are frames too.
    static let framesPerMessage = 4.0
}
