package import RTMP
package import ServerConfiguration

extension RTMP.Limits {
    package init(_ config: ServerConfig.Limits) {
        self.init()
        self.videoMessageBytes = config.videoMessageBytes
        self.audioMessageBytes = config.audioMessageBytes
        self.dataMessageBytes = config.dataMessageBytes
        self.partialMessages = config.partialMessages
        self.partialBytes = config.partialBytes
        self.messageBytesBeforePublish = config.messageBytesBeforePublish
        self.bytesBeforePublish = config.bytesBeforePublish
        self.nameBytes = config.streamNameBytes
    }
}
