import LibC
package import NIOCore

/// The options that the server's handlers and listeners set.
extension SocketChannel {
    package func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        if self.loop.inEventLoop { return self.loop.makeCompletedFuture { try self.set(option, value) } }
        return self.loop.submit { try self.set(option, value) }
    }

    package func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        if self.loop.inEventLoop { return self.loop.makeCompletedFuture { try self.get(option) } }
        return self.loop.submit { try self.get(option) }
    }

    package var syncOptions: (any NIOSynchronousChannelOptions)? { SyncOptions(channel: self) }

    private struct SyncOptions: NIOSynchronousChannelOptions {
        let channel: SocketChannel

        func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) throws { try self.channel.set(option, value) }
        func getOption<Option: ChannelOption>(_ option: Option) throws -> Option.Value { try self.channel.get(option) }
    }

    private func set<Option: ChannelOption>(_ option: Option, _ value: Option.Value) throws {
        guard self.isOpen else { throw ChannelError.ioOnClosedChannel }
        switch (option, value) {
        case (is ChannelOptions.Types.AutoReadOption, let reads as Bool):
            self.readsByItself = reads
            if reads {
                self.askToRead()
            } else {
                self.isReadAsked = false
                self.ignore(.read)
            }
        case (is ChannelOptions.Types.AllowRemoteHalfClosureOption, let allows as Bool): self.allowsHalfClosure = allows
        case (is ChannelOptions.Types.MaxMessagesPerReadOption, let most as UInt): self.mostReads = max(1, Int(clamping: most))
        case (is ChannelOptions.Types.RecvAllocatorOption, let allocator as AdaptiveRecvByteBufferAllocator):
            // Pieces are read into the loop's own memory and copied to their size: only the largest matters.
            self.mostBytesPerRead = max(1, allocator.maximum)
        case (is ChannelOptions.Types.WriteBufferWaterMarkOption, let mark as ChannelOptions.Types.WriteBufferWaterMark):
            self.waterMark = mark
        case (let socket as ChannelOptions.Types.SocketOption, let number as SocketOptionValue):
            var number = number
            let code = setsockopt(
                self.descriptor, CInt(socket.level), socket.name, &number, socklen_t(MemoryLayout<SocketOptionValue>.size))
            guard code == 0 else { throw IOError(errnoCode: errno, reason: "setsockopt") }
        default: throw ChannelError.operationUnsupported
        }
    }

    private func get<Option: ChannelOption>(_ option: Option) throws -> Option.Value {
        guard self.isOpen else { throw ChannelError.ioOnClosedChannel }
        let value: Any =
            switch option {
            case is ChannelOptions.Types.AutoReadOption: self.readsByItself
            case is ChannelOptions.Types.AllowRemoteHalfClosureOption: self.allowsHalfClosure
            case is ChannelOptions.Types.MaxMessagesPerReadOption: UInt(self.mostReads)
            case is ChannelOptions.Types.WriteBufferWaterMarkOption: self.waterMark
            case is ChannelOptions.Types.BufferedWritableBytesOption: self.pendingBytes
            case let socket as ChannelOptions.Types.SocketOption: try self.number(of: socket)
            default: throw ChannelError.operationUnsupported
            }
        guard let value = value as? Option.Value else { throw ChannelError.operationUnsupported }
        return value
    }

    private func number(of socket: ChannelOptions.Types.SocketOption) throws -> SocketOptionValue {
        var (number, size) = (SocketOptionValue(0), socklen_t(MemoryLayout<SocketOptionValue>.size))
        guard getsockopt(self.descriptor, CInt(socket.level), socket.name, &number, &size) == 0 else {
            throw IOError(errnoCode: errno, reason: "getsockopt")
        }
        return number
    }
}
