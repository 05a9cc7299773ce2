import RTMP

/// Values sent by foreign peers, captured on loopback unless the origin says otherwise.
extension AMF0Vector {
    static let foreign: [AMF0Vector] = [
        ffmpegConnect, ffmpegPublish, ffmpegMetadata, ffmpegPlayConnect, librtmpConnect, librtmpPlay, gstreamerMetadata,
        nginxResult, nginxStatus, nginxMetadata, obsMetadata, obsObjectMetadata,
    ]

    static let ffmpegConnect = AMF0Vector(
        "ffmpeg 5.1.9 (Lavf59.27.100) pushing to a bare RTMP listener: connect.",
        """
        020007636f6e6e656374003ff00000000000000300036170700200046c69766500047479706502000a6e6f6e707269766174650008666c61
        7368566572020024464d4c452f332e302028636f6d70617469626c653b204c61766635392e32372e313030290005746355726c02001b7274
        6d703a2f2f3132372e302e302e313a31393335312f6c697665000009
        """,
        [
            "connect",
            1,
            .object([
                AMF0Property(name: "app", value: "live"),
                AMF0Property(name: "type", value: "nonprivate"),
                AMF0Property(name: "flashVer", value: "FMLE/3.0 (compatible; Lavf59.27.100)"),
                AMF0Property(name: "tcUrl", value: "rtmp://127.0.0.1:19351/live"),
            ]),
        ])

    static let ffmpegPublish = AMF0Vector(
        "ffmpeg 5.1.9: publish.",
        """
        0200077075626c6973680040140000000000000502000463616d310200046c697665
        """,
        [
            "publish",
            5,
            .null,
            "cam1",
            "live",
        ])

    static let ffmpegMetadata = AMF0Vector(
        "ffmpeg 5.1.9, FLV muxer on an output that cannot seek: @setDataFrame, an ECMA array.",
        """
        02000d40736574446174614672616d6502000a6f6e4d65746144617461080000000d00086475726174696f6e000000000000000000000577
        69647468004074000000000000000668656967687400406e000000000000000d766964656f64617461726174650000000000000000000009
        6672616d6572617465004039000000000000000c766964656f636f646563696400401c000000000000000d617564696f6461746172617465
        004050d88000000000000f617564696f73616d706c65726174650040e5888000000000000f617564696f73616d706c6573697a6500403000
        0000000000000673746572656f0100000c617564696f636f64656369640040240000000000000007656e636f64657202000d4c6176663539
        2e32372e313030000866696c6573697a65000000000000000000000009
        """,
        [
            "@setDataFrame",
            "onMetaData",
            .ecmaArray([
                AMF0Property(name: "duration", value: 0),
                AMF0Property(name: "width", value: 320),
                AMF0Property(name: "height", value: 240),
                AMF0Property(name: "videodatarate", value: 0),
                AMF0Property(name: "framerate", value: 25),
                AMF0Property(name: "videocodecid", value: 7),
                AMF0Property(name: "audiodatarate", value: 67.3828125),
                AMF0Property(name: "audiosamplerate", value: 44100),
                AMF0Property(name: "audiosamplesize", value: 16),
                AMF0Property(name: "stereo", value: false),
                AMF0Property(name: "audiocodecid", value: 10),
                AMF0Property(name: "encoder", value: "Lavf59.27.100"),
                AMF0Property(name: "filesize", value: 0),
            ]),
        ])

    static let ffmpegPlayConnect = AMF0Vector(
        "ffmpeg 5.1.9 as a player: connect.",
        """
        020007636f6e6e656374003ff00000000000000300036170700200046c6976650008666c61736856657202000d4c4e5820392c302c313234
        2c320005746355726c02001b72746d703a2f2f3132372e302e302e313a31393335322f6c6976650004667061640100000c6361706162696c
        697469657300402e000000000000000b617564696f436f646563730040afce0000000000000b766964656f436f6465637300406f80000000
        0000000d766964656f46756e6374696f6e003ff0000000000000000009
        """,
        [
            "connect",
            1,
            .object([
                AMF0Property(name: "app", value: "live"),
                AMF0Property(name: "flashVer", value: "LNX 9,0,124,2"),
                AMF0Property(name: "tcUrl", value: "rtmp://127.0.0.1:19352/live"),
                AMF0Property(name: "fpad", value: false),
                AMF0Property(name: "capabilities", value: 15),
                AMF0Property(name: "audioCodecs", value: 4071),
                AMF0Property(name: "videoCodecs", value: 252),
                AMF0Property(name: "videoFunction", value: 1),
            ]),
        ])

    static let librtmpConnect = AMF0Vector(
        "librtmp 2.4 (rtmpdump -C O:1 -C NN:n:2.5 -C NB:flag:1 -C O:0): connect with an object of arguments.",
        """
        020007636f6e6e656374003ff00000000000000300036170700200046c6976650008666c61736856657202000e4c4e582031302c302c3332
        2c31380005746355726c02001b72746d703a2f2f3132372e302e302e313a31393335332f6c6976650004667061640100000c636170616269
        6c697469657300402e000000000000000b617564696f436f646563730040a8ee0000000000000b766964656f436f6465637300406f800000
        000000000d766964656f46756e6374696f6e003ff00000000000000000090300016e0040040000000000000004666c61670101000009
        """,
        [
            "connect",
            1,
            .object([
                AMF0Property(name: "app", value: "live"),
                AMF0Property(name: "flashVer", value: "LNX 10,0,32,18"),
                AMF0Property(name: "tcUrl", value: "rtmp://127.0.0.1:19353/live"),
                AMF0Property(name: "fpad", value: false),
                AMF0Property(name: "capabilities", value: 15),
                AMF0Property(name: "audioCodecs", value: 3191),
                AMF0Property(name: "videoCodecs", value: 252),
                AMF0Property(name: "videoFunction", value: 1),
            ]),
            .object([
                AMF0Property(name: "n", value: 2.5),
                AMF0Property(name: "flag", value: true),
            ]),
        ])

    static let librtmpPlay = AMF0Vector(
        "librtmp 2.4 (rtmpdump -v): play, live only.",
        """
        020004706c61790040100000000000000502000463616d3100c08f400000000000
        """,
        [
            "play",
            4,
            .null,
            "cam1",
            -1000,
        ])

    static let gstreamerMetadata = AMF0Vector(
        "GStreamer 1.22.0, flvmux and rtmpsink: @setDataFrame.",
        """
        02000d40736574446174614672616d6502000a6f6e4d65746144617461080000000a000c766964656f636f646563696400401c0000000000
        0000057769647468004074000000000000000668656967687400406e000000000000000c417370656374526174696f58003ff00000000000
        00000c417370656374526174696f59003ff000000000000000096672616d657261746500403e000000000000000d766964656f6461746172
        6174650040a0000000000000000f6d6574616461746163726561746f7202001a4753747265616d657220312e32322e3020464c56206d7578
        65720007656e636f64657202001a4753747265616d657220312e32322e3020464c56206d75786572000c6372656174696f6e646174650200
        18536174204e6f762032312030373a30343a33352032303236000009
        """,
        [
            "@setDataFrame",
            "onMetaData",
            .ecmaArray([
                AMF0Property(name: "videocodecid", value: 7),
                AMF0Property(name: "width", value: 320),
                AMF0Property(name: "height", value: 240),
                AMF0Property(name: "AspectRatioX", value: 1),
                AMF0Property(name: "AspectRatioY", value: 1),
                AMF0Property(name: "framerate", value: 30),
                AMF0Property(name: "videodatarate", value: 2048),
                AMF0Property(name: "metadatacreator", value: "GStreamer 1.22.0 FLV muxer"),
                AMF0Property(name: "encoder", value: "GStreamer 1.22.0 FLV muxer"),
                AMF0Property(name: "creationdate", value: "Sat Nov 21 07:04:35 2026"),
            ]),
        ])

    static let nginxResult = AMF0Vector(
        "nginx-rtmp 1.2.2: the answer to connect.",
        """
        0200075f726573756c74003ff0000000000000030006666d7356657202000d464d532f332c302c312c313233000c6361706162696c697469
        657300403f0000000000000000090300056c6576656c0200067374617475730004636f646502001d4e6574436f6e6e656374696f6e2e436f
        6e6e6563742e53756363657373000b6465736372697074696f6e020015436f6e6e656374696f6e207375636365656465642e000e6f626a65
        6374456e636f64696e67000000000000000000000009
        """,
        [
            "_result",
            1,
            .object([
                AMF0Property(name: "fmsVer", value: "FMS/3,0,1,123"),
                AMF0Property(name: "capabilities", value: 31),
            ]),
            .object([
                AMF0Property(name: "level", value: "status"),
                AMF0Property(name: "code", value: "NetConnection.Connect.Success"),
                AMF0Property(name: "description", value: "Connection succeeded."),
                AMF0Property(name: "objectEncoding", value: 0),
            ]),
        ])

    static let nginxStatus = AMF0Vector(
        "nginx-rtmp 1.2.2: onStatus for play.",
        """
        0200086f6e537461747573000000000000000000050300056c6576656c0200067374617475730004636f64650200144e657453747265616d
        2e506c61792e5374617274000b6465736372697074696f6e02000a5374617274206c697665000009
        """,
        [
            "onStatus",
            0,
            .null,
            .object([
                AMF0Property(name: "level", value: "status"),
                AMF0Property(name: "code", value: "NetStream.Play.Start"),
                AMF0Property(name: "description", value: "Start live"),
            ]),
        ])

    static let nginxMetadata = AMF0Vector(
        "nginx-rtmp 1.2.2 to a player, fed by ffmpeg: an object, with unset text as 32 zero bytes.",
        """
        02000a6f6e4d6574614461746103000653657276657202002e4e47494e582052544d5020286769746875622e636f6d2f617275742f6e6769
        6e782d72746d702d6d6f64756c652900057769647468004074000000000000000668656967687400406e000000000000000c646973706c61
        795769647468004074000000000000000d646973706c617948656967687400406e00000000000000086475726174696f6e00402000000000
        000000096672616d65726174650040390000000000000003667073004039000000000000000d766964656f64617461726174650000000000
        00000000000c766964656f636f646563696400401c000000000000000d617564696f6461746172617465004050c00000000000000c617564
        696f636f6465636964004024000000000000000770726f66696c650200200000000000000000000000000000000000000000000000000000
        00000000000000056c6576656c0200200000000000000000000000000000000000000000000000000000000000000000000009
        """,
        [
            "onMetaData",
            .object([
                AMF0Property(name: "Server", value: "NGINX RTMP (github.com/arut/nginx-rtmp-module)"),
                AMF0Property(name: "width", value: 320),
                AMF0Property(name: "height", value: 240),
                AMF0Property(name: "displayWidth", value: 320),
                AMF0Property(name: "displayHeight", value: 240),
                AMF0Property(name: "duration", value: 8),
                AMF0Property(name: "framerate", value: 25),
                AMF0Property(name: "fps", value: 25),
                AMF0Property(name: "videodatarate", value: 0),
                AMF0Property(name: "videocodecid", value: 7),
                AMF0Property(name: "audiodatarate", value: 67),
                AMF0Property(name: "audiocodecid", value: 10),
                AMF0Property(name: "profile", value: .string(String(repeating: "\0", count: 32))),
                AMF0Property(name: "level", value: .string(String(repeating: "\0", count: 32))),
            ]),
        ])

    static let obsMetadata = AMF0Vector(
        "OBS: the fields of its flv-mux.c in their order, ECMA array with its fixed count 14, by librtmp's AMF_Encode functions.",
        """
        02000d40736574446174614672616d6502000a6f6e4d65746144617461080000000e00086475726174696f6e000000000000000000000866
        696c6553697a65000000000000000000000577696474680040940000000000000006686569676874004086800000000000000c766964656f
        636f646563696402000461766331000d766964656f64617461726174650040a388000000000000096672616d657261746500403e00000000
        0000000c617564696f636f64656369640200046d703461000d617564696f6461746172617465004064000000000000000f617564696f7361
        6d706c65726174650040e5888000000000000f617564696f73616d706c6573697a65004030000000000000000d617564696f6368616e6e65
        6c73004000000000000000000673746572656f01010007656e636f6465720200296f62732d6f7574707574206d6f64756c6520286c69626f
        62732076657273696f6e2032372e322e3429000009
        """,
        [
            "@setDataFrame",
            "onMetaData",
            .ecmaArray([
                AMF0Property(name: "duration", value: 0),
                AMF0Property(name: "fileSize", value: 0),
                AMF0Property(name: "width", value: 1280),
                AMF0Property(name: "height", value: 720),
                AMF0Property(name: "videocodecid", value: "avc1"),
                AMF0Property(name: "videodatarate", value: 2500),
                AMF0Property(name: "framerate", value: 30),
                AMF0Property(name: "audiocodecid", value: "mp4a"),
                AMF0Property(name: "audiodatarate", value: 160),
                AMF0Property(name: "audiosamplerate", value: 44100),
                AMF0Property(name: "audiosamplesize", value: 16),
                AMF0Property(name: "audiochannels", value: 2),
                AMF0Property(name: "stereo", value: true),
                AMF0Property(name: "encoder", value: "obs-output module (libobs version 27.2.4)"),
            ]),
        ])

    static let obsObjectMetadata = AMF0Vector(
        "The same fields in the object form.",
        """
        02000d40736574446174614672616d6502000a6f6e4d657461446174610300086475726174696f6e000000000000000000000866696c6553
        697a65000000000000000000000577696474680040940000000000000006686569676874004086800000000000000c766964656f636f6465
        63696402000461766331000d766964656f64617461726174650040a388000000000000096672616d657261746500403e000000000000000c
        617564696f636f64656369640200046d703461000d617564696f6461746172617465004064000000000000000f617564696f73616d706c65
        726174650040e5888000000000000f617564696f73616d706c6573697a65004030000000000000000d617564696f6368616e6e656c730040
        00000000000000000673746572656f01010007656e636f6465720200296f62732d6f7574707574206d6f64756c6520286c69626f62732076
        657273696f6e2032372e322e3429000009
        """,
        [
            "@setDataFrame",
            "onMetaData",
            .object([
                AMF0Property(name: "duration", value: 0),
                AMF0Property(name: "fileSize", value: 0),
                AMF0Property(name: "width", value: 1280),
                AMF0Property(name: "height", value: 720),
                AMF0Property(name: "videocodecid", value: "avc1"),
                AMF0Property(name: "videodatarate", value: 2500),
                AMF0Property(name: "framerate", value: 30),
                AMF0Property(name: "audiocodecid", value: "mp4a"),
                AMF0Property(name: "audiodatarate", value: 160),
                AMF0Property(name: "audiosamplerate", value: 44100),
                AMF0Property(name: "audiosamplesize", value: 16),
                AMF0Property(name: "audiochannels", value: 2),
                AMF0Property(name: "stereo", value: true),
                AMF0Property(name: "encoder", value: "obs-output module (libobs version 27.2.4)"),
            ]),
        ])
}
