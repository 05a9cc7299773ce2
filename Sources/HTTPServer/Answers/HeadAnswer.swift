import HTTPTypes
package import Hummingbird
package import NIOCore

extension Response {
    /// The answer to HEAD in place of this one to GET: the same head, with the Content-Length of the content that is left out (RFC 9110 §8.6, §9.3.2).
    package var withoutContent: Response {
        var answer = self
        let length = self.headers[.contentLength]
        answer.body = ResponseBody()
        // Setting the body has set the length too.
        answer.headers[.contentLength] = length
        return answer
    }
}

/// A handoff's handler that ends an answer behind its head. Loop-bound.
package final class HeadAnswerEnd: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    package init() {}

    package func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        // Over HTTP/2 this ends the stream.
        context.close(mode: .output).whenComplete { _ in channel.close(promise: nil) }
    }
}
