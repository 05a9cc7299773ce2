import FFmpeg
import Foundation
import Media
import NIOCore
import TestSupport
import Testing

/// Coded audio that decodes to samples that are not sound.
@Suite struct DamagedAudioTests {
    /// A block of Nellymoser, then damaged ones. libav's AAC encoder hangs on the samples decoded from them. Found by fuzzing.
    private static let messages = [
        """
        Zmac9OrBmmPPPefegw5CSDYnZLZVsQWXgHpGZBtlW9iFFR4ezszMzAAAFwBBZom12ctwFmOsudZeezHGSIdtPcg=
        """,
        """
        8fBI/BpqhczIjMq0dGZmrjx+ESfPHZEpPe+tSt0skgV6oJd5tBSTsQAAFwBBZs+s2MuAFmvMOdfca+/FiE3arlHxnyGf8RPZ1lCrFDdqo0pLS0/LzORj
        cO08tfj4Iz8d706yTLNO6qSHh9eDMzMAABgAQWaICxgB71C5TcRMaZVWfDw4fMzMAAAXAEFmSb2453DWWo651pxzMsYozJcS3l6lER3S7R2B3Rn0i+wD
        PTw8nJmZWeH8MHNuAYrYUDdsksZoeIdWo5a0tszMzAAAFwBBZg612LOgGHOsNedecw/GaE/TXBLuXBK1kpHmrWCfIC/rskpLS0vLzOSC9KtQObj0K58w
        eC7TK8SN2qjTw9PTMjMAABcAQWYMrbjrYBZTrznm3HstxthC8j4LrRo5eF8Hu5UoT6wVWunh8DEzMzOvGbfrEqm3zt3jcW0pxilmZl62pLTNnMnMAAAY
        AEFmTLXZs6AWc6s155xzMMboLjMsTi2g7Vf83TRZzygX1UqreHhoaJmZGV7JtYdHh1uUpZsJ2ynWOTIjMy0tLS3NzAAAFwBBZs6suOdwFluuueace+7F
        aHQuZs/G9TOZ09qQwUzUPGmVVnw9PDMzM5+rVaG2VbEFl4B6RmQbZVvYhRUeHs7MzMwAABcAQWaJtdnLcBZjrLnWXnsxxkiHbfPItPYMo0Hx8Ej8GmqF
        zMiMyrR0ZmauPH4RJ88dkSk9761K3SySBXqgl3m0FJOxAAAXAEFmz6wBAAAAAAAAANjLgBZrzDnX3GvvxYhN2q5R8Z8hn/ET2dZQqxQ3aqNKS0tPy8zk
        Y3DtPLX4+CM/He9OskyzTuqkh4fXgzMzAAAYAEFmiL2453AUW6055pxzMcboQyQeMpfq8pwOHhqP4mUU/DIv88KGx8zM4KYm45Bh/ndWt02UsTm3h1qp
        lVqJh2ZmZgAAFwBBZg612LegFnOsOddgc+/FmPIsW94ZXm5SY74pcKNc48zLzLS0tMzMzBiNS3S3ynYLFWHfjdEs1EtxEzc8PS0zMzMAABcAQWbXjLPr
        oBZT9zb3nHOuubYmbYlqRN0Hp5DYIblW7ERO5NLS0tKamZn5JcztOlEFAhaS1ksMd4P0DeYDX/Ajx3Gc
        """,
    ]

    private static func frames() throws -> [Frame] {
        try Self.messages.enumerated().map { index, text in
            let bytes = try #require(Data(base64Encoded: text, options: .ignoreUnknownCharacters))
            return try Frame(kind: .audio, timestamp: Int64(index) * 1_000, payload: ByteBuffer(bytes: bytes))
        }
    }

    @Test(.timeLimit(.minutes(5))) func theTranscoderGoesOn() throws {
        let frames = try Self.frames()
        let transcoder = try AudioTranscoder(Track(frames[0]))
        var runs = 0
        for frame in frames { runs += try transcoder.transcode(Sample(frame).orThrow("a sample")).count }
        runs += try transcoder.flush().count
        #expect(runs > 10)
    }

    @Test func samplesAreSound() throws {
        let frames = try Self.frames()
        let decoder = try AudioDecoder(Track(frames[0]))
        for frame in frames {
            for run in try decoder.decode(Sample(frame).orThrow("a sample").payload) {
                #expect(run.planes.allSatisfy { $0.allSatisfy { abs($0) <= AudioDecoder.loudest } })
            }
        }
    }
}
