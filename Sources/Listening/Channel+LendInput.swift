package import NIOCore
import Sockets

extension Channel {
    /// Tells the channel what ``SocketChannel/lendsInput`` says. Channels of other kinds go on as before. On its loop.
    package func lendInput() { (self as? SocketChannel)?.lendsInput = true }
}
